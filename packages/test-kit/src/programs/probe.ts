/** Python with raw system calls by number, to be put in front of a probing program. */
export const PROBE = `
import ctypes, errno, json, os, platform
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long

def call(number, *args):
    """'ok' or the name of the errno; arguments are full 64-bit registers."""
    ctypes.set_errno(0)
    words = [ctypes.c_ulong(a & (1 << 64) - 1) if isinstance(a, int) else a for a in args]
    result = libc.syscall(ctypes.c_long(number), *words)
    return "ok" if result >= 0 else errno.errorcode.get(ctypes.get_errno(), str(ctypes.get_errno()))

def attempt(action):
    try:
        action()
        return "ok"
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error))

def child(action):
    """Wait status of a child that runs the action: negative signal, else exit code."""
    pid = os.fork()
    if pid == 0:
        try: action()
        finally: os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
`;
