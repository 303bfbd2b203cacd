/**
 * Python that runs machine code: system calls without the C library, by each of the processor's ways into the kernel.
 * `native(number, a, b, c)` answers the result; the 32-bit ways `int_0x80`, `far_32` and `sysenter` are for a child
 * process. Needs `ctypes` and x86-64.
 */
export const MACHINE_CODE = `
import mmap, struct
MAP_32BIT = 0x40
def place(code):
    """Memory below 4 GB that holds the code and can be executed."""
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    address = libc.mmap(None, 4096, 7, 0x22 | MAP_32BIT, -1, 0)
    assert address and address < 1 << 32, address
    ctypes.memmove(address, code, len(code))
    return address
def run(code):
    return ctypes.CFUNCTYPE(ctypes.c_long)(place(code))()
def registers(number, a, b, c):
    """mov eax, ebx, ecx, edx"""
    return b"".join(op + struct.pack("<I", value & 0xffffffff) for op, value in
                    ((b"\\xb8", number), (b"\\xbb", a), (b"\\xb9", b), (b"\\xba", c)))
def native(number, a, b, c):
    """push rbx; mov eax, edi, esi, edx; syscall; pop rbx; ret"""
    load = b"".join(op + struct.pack("<I", value) for op, value in
                    ((b"\\xb8", number), (b"\\xbf", a), (b"\\xbe", b), (b"\\xba", c)))
    return run(b"\\x53" + load + b"\\x0f\\x05\\x5b\\xc3")
def int_0x80(number, a, b, c):
    return run(b"\\x53" + registers(number, a, b, c) + b"\\xcd\\x80\\x5b\\xc3")
def sysenter(number, a, b, c):
    """mov ebp, esp first: the entry reads the user's stack"""
    return run(b"\\x53\\x55" + registers(number, a, b, c) + b"\\x48\\x89\\xe5\\x0f\\x34\\x5d\\x5b\\xc3")
def far_32(number, a, b, c):
    """A far return into the 32-bit code segment, the call there, then exit by the same gate."""
    inner = place(registers(number, a, b, c) + b"\\xcd\\x80\\x89\\xc3\\xb8" + struct.pack("<I", 1) + b"\\xcd\\x80")
    return run(b"\\x6a\\x23\\x68" + struct.pack("<I", inner) + b"\\x48\\xcb")
`;
