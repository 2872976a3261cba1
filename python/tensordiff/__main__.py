"""python -m tensordiff: the program, and `capture SCRIPT`."""

from .program import main

if __name__ == "__main__":
    main()
