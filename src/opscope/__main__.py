"""python -m opscope"""

from opscope.cli import main

main()
