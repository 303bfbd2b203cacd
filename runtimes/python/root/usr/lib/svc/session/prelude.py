# Runs a program of a session: prelude.py ENTRY ARGUMENT... behaves like python3 ENTRY ARGUMENT... (see _svc_session/__init__.py).
# One expression, so that nothing of it stays behind in the program's __main__.
__import__("_svc_session.start").start.run()
