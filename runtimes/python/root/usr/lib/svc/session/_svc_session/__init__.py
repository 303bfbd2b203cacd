"""Carries the variables of one Python program to the next one of its session.

  start     loads the variables, runs the program, saves at its end
  state     the file of variables: its parts, its names
  load      reads the file into the namespace of the program
  save      writes the file, one variable after the other, in a bounded time
  plain     the pickler of values of builtin types, and of modules
  by_value  the pickler of everything else: cloudpickle, fitted to sessions
  figures   the figures that pyplot holds
  clock     the limit of time for both directions
  imports   modules of the interpreter, whatever the workspace has

The file lies in the workspace, and whatever can write there can change it: its pickles are as hostile as the program itself, and run with
the program's rights, in the program's jail. Nothing here protects the jail. What it does guarantee, of files that it wrote: a variable that
cannot be saved or loaded harms no other one, and no program fails because of its variables.

Nothing is imported before it is needed; a zygote has all of it loaded.
"""
