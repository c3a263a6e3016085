"""`python -m incdsi.cli`, as the script `incdsi`."""

from incdsi.cli import main

main()
