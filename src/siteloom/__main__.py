"""`python -m siteloom` is `siteloom`."""

from siteloom.cli import main

main()
