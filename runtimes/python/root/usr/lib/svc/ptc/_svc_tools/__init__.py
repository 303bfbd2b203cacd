"""What a Python program sees of its tools.

  start    runs the program; top-level await
  become   becomes the program: its __main__, its arguments, its exit; programs of sessions start with it, too
  alone    top-level await without an event loop, for programs that cannot notice the difference
  names    the names that are ready in every program
  tool     a tool as a function: binds arguments, has a signature
  values   arguments and results as JSON
  call     one issued call: connection, answer, waiting for it with and without an event loop
  result   what a tool returns while an event loop runs: awaitable, and its value at first use
  spawn    the program's main module in children of multiprocessing

Tools come as data from tools.json beside the socket of SANDBOX_TOOL_SOCKET. A zygote has all of this loaded. Without a zygote
nothing is imported before it is needed: the modules of the standard library that this package could use cost more than a whole
start of Python. Everything here runs with the program's own rights and keeps no secret; the other end of the socket decides
what a program may do.
"""
