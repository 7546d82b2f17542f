"""Imports torch and records when: `span` is (began, ended), in this process or in the one it was forked from."""

import time

_began = time.time()
import torch  # noqa: E402, F401

span = (_began, time.time())
