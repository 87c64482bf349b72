"""`python -m siteloom` is `siteloom`."""

from siteloom.apps.cli.main import main

main()
