"""What import_at_fork.py imports: takes as long as import_gate says."""

import import_gate

import_gate.entered.set()
import_gate.leave.wait()
