"""Imports torch and remembers when: `span` is (began, ended), here or where we were forked from."""

import time

_began = time.time()
import torch  # noqa: E402, F401

span = (_began, time.time())
