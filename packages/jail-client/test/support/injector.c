/*
 * Makes another process execute one system call, as code that was injected into it would, and prints what it returned:
 * injector PID NUMBER ARGUMENT... An argument is a number, or text behind '=' or bytes in hexadecimal digits behind '#',
 * which are written into the process first. "killed N": the call ended the process with this signal.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARGUMENTS 6
#define DATA 2048 /* bytes of each argument in memory, far below the stack that is in use */

#if defined(__x86_64__)
typedef struct user_regs_struct registers;
static unsigned long stack_of(const registers *r) { return r->rsp; }
static long result_of(const registers *r) { return (long)r->rax; }

static void set_call(registers *r, unsigned long number, const unsigned long *a)
{
	unsigned long long *const places[] = {&r->rdi, &r->rsi, &r->rdx, &r->r10, &r->r8, &r->r9};

	for (int i = 0; i < ARGUMENTS; i++)
		*places[i] = a[i];
	r->rax = number;
	r->orig_rax = ~0ull; /* no restart of the call that was interrupted */
	r->rip -= 2;	     /* the process waits in a system call: its instruction is the last one */
}
#elif defined(__aarch64__)
typedef struct user_regs_struct registers;
static unsigned long stack_of(const registers *r) { return r->sp; }
static long result_of(const registers *r) { return (long)r->regs[0]; }

static void set_call(registers *r, unsigned long number, const unsigned long *a)
{
	for (int i = 0; i < ARGUMENTS; i++)
		r->regs[i] = a[i];
	r->regs[8] = number;
	r->pc -= 4;
}
#endif

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void transfer(int request, pid_t pid, registers *r)
{
	struct iovec part = {r, sizeof(*r)};

	if (ptrace(request, pid, NT_PRSTATUS, &part) < 0)
		die("registers");
}

static size_t bytes_of(const char *text, unsigned char *bytes)
{
	size_t size = 0;
	unsigned byte;

	if (*text == '=')
		return (size_t)snprintf((char *)bytes, DATA, "%s", text + 1) + 1;
	for (text++; size < DATA && sscanf(text, "%2x", &byte) == 1; text += 2)
		bytes[size++] = (unsigned char)byte;
	return size;
}

static unsigned long place(pid_t pid, const char *text, unsigned long at)
{
	unsigned char bytes[DATA];
	struct iovec local = {bytes, bytes_of(text, bytes)}, remote = {(void *)at, local.iov_len};

	if (process_vm_writev(pid, &local, 1, &remote, 1, 0) != (ssize_t)local.iov_len)
		die("write");
	return at;
}

static int wait_for(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, __WALL) != pid)
		die("wait");
	if (!WIFSIGNALED(status))
		return status;
	printf("killed %d\n", WTERMSIG(status));
	exit(0);
}

int main(int argc, char **argv)
{
	pid_t pid = argc > 2 ? atoi(argv[1]) : 0;
	unsigned long arguments[ARGUMENTS] = {0};
	registers before, call;

	if (pid < 2 || ptrace(PTRACE_SEIZE, pid, 0, 0) < 0 || ptrace(PTRACE_INTERRUPT, pid, 0, 0) < 0)
		die("attach");
	wait_for(pid);
	transfer(PTRACE_GETREGSET, pid, &before);
	for (int i = 0; i < ARGUMENTS && i + 3 < argc; i++) {
		const char *text = argv[i + 3];
		unsigned long at = (stack_of(&before) - 65536 - DATA * (unsigned long)i) & ~15ul;

		arguments[i] = *text == '=' || *text == '#' ? place(pid, text, at) : (unsigned long)strtol(text, NULL, 0);
	}
	call = before;
	set_call(&call, strtoul(argv[2], NULL, 0), arguments);
	transfer(PTRACE_SETREGSET, pid, &call);
	if (ptrace(PTRACE_SINGLESTEP, pid, 0, 0) < 0)
		die("step");
	wait_for(pid);
	transfer(PTRACE_GETREGSET, pid, &call);
	printf("%ld\n", result_of(&call));
	transfer(PTRACE_SETREGSET, pid, &before);
	ptrace(PTRACE_DETACH, pid, 0, 0);
	return 0;
}
