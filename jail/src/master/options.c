#include "master/options.h"

#include "keeper/frame.h"
#include "lib/util.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
	"Usage: jaild --root DIR [option...]\n"
	"Runs programs in single-use jails; one connection to its socket is one run.\n"
	"\n"
	"  --socket PATH             unix socket to listen on (/run/svc/jaild.sock)\n"
	"  --socket-uid UID          owner of the socket (0)\n"
	"  --socket-gid GID          group of the socket (0)\n"
	"  --socket-mode MODE        octal permissions of the socket (0600)\n"
	"  --root DIR                tree that becomes the read-only root of every jail\n"
	"  --slots N                 jails at a time, ready, running, paused or kept (8)\n"
	"  --ready N                 limit of jails that are neither paused nor kept for a\n"
	"                            client after their end (--slots)\n"
	"  --uid-base N              slot k runs as uid N+k on the host, keepers and zygotes\n"
	"                            as N-16 (200000)\n"
	"  --gid-base N              the same for gids (200000)\n"
	"  --cgroup NAME             name of jaild's own control group (svc)\n"
	"  --cgroup-base PATH        on cgroup v2: the group below which it lies, which\n"
	"                            holds no processes (jaild's own)\n"
	"  --no-cgroups              run without control groups: memory, process and CPU\n"
	"                            limits are not enforced; for debugging only\n"
	"  --memory-bytes N          memory of all jails together, file systems and all but\n"
	"                            what was staged (0 = no limit)\n"
	"  --pids N                  processes and threads of all jails together (0 = no limit)\n"
	"  --cpu-percent N           processor quota of one run, 100 = one processor (0 = none)\n"
	"  --workspace-bytes N       size of /mnt/data (536870912)\n"
	"  --workspace-inodes N      files and directories in /mnt/data (65536)\n"
	"  --tmp-bytes N             size of /tmp (104857600)\n"
	"  --shm-bytes N             size of /dev/shm (67108864)\n"
	"  --stream-bytes N          ceiling of what a client may capture of a stream (67108864)\n"
	"  --tool-directory DIR      its subdirectory <slot>, owned by the owner of the socket, is\n"
	"                            seen read-only in the jail of that slot (none)\n"
	"  --tool-mount PATH         where, one name below /run (/run/svc)\n"
	"  --stage-timeout-ms N      time a client has to send its job (150000)\n"
	"  --fetch-timeout-ms N      time without progress while files are fetched (120000)\n"
	"  --zygote NAME             a fork server of an interpreter; what follows is its:\n"
	"  --zygote-script PATH      what it runs, in the image; loads jaild's object and serves\n"
	"  --zygote-argument WORD    its command, as a program's: /path/of/interpreter ENTRY\n"
	"  --zygote-variable K=V     its environment, as a program's\n"
	"  --zygote-age-ms N         after which zygotes are replaced (600000)\n"
	"  --zygote-copies N         copies after which one is replaced (2000)\n"
	"  --check                   try every kernel feature that is needed, print one line\n"
	"                            for each, end with status 0 when all are there\n"
	"  --help, --version\n"
	"\n"
	"One JSON object per event goes to standard error. SIGTERM ends all runs and\n"
	"leaves nothing behind.\n";

enum {
	SOCKET = 1, SOCKET_UID, SOCKET_GID, SOCKET_MODE, ROOT, SLOTS, READY, UID_BASE, GID_BASE, CGROUP, CGROUP_BASE,
	NO_CGROUPS, TOOL_DIRECTORY, TOOL_MOUNT, MEMORY_BYTES, PIDS, CPU_PERCENT, WORKSPACE_BYTES, WORKSPACE_INODES, TMP_BYTES, SHM_BYTES, STREAM_BYTES,
	STAGE_TIMEOUT, FETCH_TIMEOUT, ZYGOTE, ZYGOTE_SCRIPT, ZYGOTE_ARGUMENT, ZYGOTE_VARIABLE, ZYGOTE_AGE, ZYGOTE_COPIES, CHECK, HELP, VERSION,
};

static const struct option names[] = {
	{"socket", required_argument, NULL, SOCKET},
	{"socket-uid", required_argument, NULL, SOCKET_UID},
	{"socket-gid", required_argument, NULL, SOCKET_GID},
	{"socket-mode", required_argument, NULL, SOCKET_MODE},
	{"root", required_argument, NULL, ROOT},
	{"slots", required_argument, NULL, SLOTS},
	{"ready", required_argument, NULL, READY},
	{"tool-directory", required_argument, NULL, TOOL_DIRECTORY},
	{"tool-mount", required_argument, NULL, TOOL_MOUNT},
	{"uid-base", required_argument, NULL, UID_BASE},
	{"gid-base", required_argument, NULL, GID_BASE},
	{"cgroup", required_argument, NULL, CGROUP},
	{"cgroup-base", required_argument, NULL, CGROUP_BASE},
	{"no-cgroups", no_argument, NULL, NO_CGROUPS},
	{"memory-bytes", required_argument, NULL, MEMORY_BYTES},
	{"pids", required_argument, NULL, PIDS},
	{"cpu-percent", required_argument, NULL, CPU_PERCENT},
	{"workspace-bytes", required_argument, NULL, WORKSPACE_BYTES},
	{"workspace-inodes", required_argument, NULL, WORKSPACE_INODES},
	{"tmp-bytes", required_argument, NULL, TMP_BYTES},
	{"shm-bytes", required_argument, NULL, SHM_BYTES},
	{"stream-bytes", required_argument, NULL, STREAM_BYTES},
	{"stage-timeout-ms", required_argument, NULL, STAGE_TIMEOUT},
	{"fetch-timeout-ms", required_argument, NULL, FETCH_TIMEOUT},
	{"zygote", required_argument, NULL, ZYGOTE},
	{"zygote-script", required_argument, NULL, ZYGOTE_SCRIPT},
	{"zygote-argument", required_argument, NULL, ZYGOTE_ARGUMENT},
	{"zygote-variable", required_argument, NULL, ZYGOTE_VARIABLE},
	{"zygote-age-ms", required_argument, NULL, ZYGOTE_AGE},
	{"zygote-copies", required_argument, NULL, ZYGOTE_COPIES},
	{"check", no_argument, NULL, CHECK},
	{"help", no_argument, NULL, HELP},
	{"version", no_argument, NULL, VERSION},
	{NULL, 0, NULL, 0},
};

static _Noreturn void usage(const char *name, const char *problem)
{
	fprintf(stderr, "jaild: --%s %s (see --help)\n", name, problem);
	exit(2);
}

static uint64_t number(const char *name, uint64_t min, uint64_t max)
{
	uint64_t value;

	if (!parse_u64(optarg, max, &value) || value < min)
		usage(name, "is out of its range");
	return value;
}

/* Resolves links once, so that a rebuild of the image does not change a running jaild. */
static const char *directory(const char *name)
{
	const char *path = realpath(optarg, NULL);

	if (!path)
		usage(name, "does not exist");
	return path;
}

/* /run/NAME: the parent holds nothing else in a jail. */
static const char *tool_mount(const char *name)
{
	const size_t parent = strlen(TOOL_MOUNT_PARENT);

	if (strncmp(optarg, TOOL_MOUNT_PARENT, parent) != 0 || optarg[parent] == '\0' || optarg[parent] == '.' ||
	    strchr(optarg + parent, '/') || strlen(optarg) > 64)
		usage(name, "is not one name below " TOOL_MOUNT_PARENT);
	return optarg;
}

static mode_t octal(const char *name)
{
	char *end;
	unsigned long value = strtoul(optarg, &end, 8);

	if (!*optarg || *end || value > 0777)
		usage(name, "is no octal mode");
	return (mode_t)value;
}

static const char *control_group(const char *name)
{
	size_t size = strlen(optarg);

	if (size < 1 || size > 64 || *optarg == '.' ||
	    strspn(optarg, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") != size)
		usage(name, "takes 1 to 64 letters, digits, '-', '_' and '.'");
	return optarg;
}

static void new_zygote(struct options *o, const char *name)
{
	if (o->zygotes == ZYGOTES_MAX || !*optarg || strlen(optarg) > 64)
		usage(name, "is there too often, or has no good name");
	o->zygote[o->zygotes++].name = optarg;
}

static struct zygote_options *last_zygote(struct options *o, const char *name)
{
	if (o->zygotes == 0)
		usage(name, "comes before --zygote");
	return &o->zygote[o->zygotes - 1];
}

static void add_word(const char **words, unsigned *count, const char *name)
{
	if (*count == ZYGOTE_WORDS_MAX)
		usage(name, "is there too often");
	words[(*count)++] = optarg;
}

static void check_zygotes(const struct options *o)
{
	for (unsigned i = 0; i < o->zygotes; i++)
		if (!o->zygote[i].script || o->zygote[i].argc < 2 || strchr(o->zygote[i].argv[1], '/'))
			usage("zygote", "needs a script, and a command whose second word is a file name");
}

static void handle_option(struct options *o, int option, const char *name)
{
	/* No machine has more memory. */
	const uint64_t memory_max = UINT64_C(1) << 50, size_max = UINT64_C(1) << 40, id_max = UINT32_MAX - 2 * SLOTS_MAX;

	switch (option) {
	case SOCKET: o->socket = optarg; break;
	case SOCKET_UID: o->socket_uid = (uid_t)number(name, 0, id_max); break;
	case SOCKET_GID: o->socket_gid = (gid_t)number(name, 0, id_max); break;
	case SOCKET_MODE: o->socket_mode = octal(name); break;
	case ROOT: o->root = directory(name); break;
	case SLOTS: o->slots = (unsigned)number(name, 1, SLOTS_MAX); break;
	case READY: o->ready = (unsigned)number(name, 1, SLOTS_MAX); break;
	case TOOL_DIRECTORY: o->tool_directory = optarg; break;
	case TOOL_MOUNT: o->tool_mount = tool_mount(name); break;
	case UID_BASE: o->uid_base = (uid_t)number(name, 1000 + IDS_BELOW_BASE, id_max); break;
	case GID_BASE: o->gid_base = (gid_t)number(name, 1000 + IDS_BELOW_BASE, id_max); break;
	case CGROUP: o->cgroup = control_group(name); break;
	case CGROUP_BASE: o->cgroup_base = directory(name); break;
	case NO_CGROUPS: o->no_cgroups = true; break;
	case MEMORY_BYTES: o->memory_bytes = number(name, 0, memory_max); break;
	case PIDS: o->pids = number(name, 0, 1u << 22); break;
	case CPU_PERCENT: o->cpu_percent = (unsigned)number(name, 0, 100000); break;
	case WORKSPACE_BYTES: o->workspace_bytes = number(name, 65536, size_max); break;
	case WORKSPACE_INODES: o->workspace_inodes = number(name, 16, 4u << 20); break;
	case TMP_BYTES: o->tmp_bytes = number(name, 65536, size_max); break;
	case SHM_BYTES: o->shm_bytes = number(name, 65536, size_max); break;
	case STREAM_BYTES: o->stream_bytes = number(name, 1024, STREAM_BYTES_MAX); break;
	case STAGE_TIMEOUT: o->stage_ms = number(name, 1, 3600000); break;
	case FETCH_TIMEOUT: o->fetch_ms = number(name, 1, 3600000); break;
	case ZYGOTE: new_zygote(o, name); break;
	case ZYGOTE_SCRIPT: last_zygote(o, name)->script = optarg; break;
	case ZYGOTE_ARGUMENT: add_word(last_zygote(o, name)->argv, &last_zygote(o, name)->argc, name); break;
	case ZYGOTE_VARIABLE: add_word(last_zygote(o, name)->env, &last_zygote(o, name)->envc, name); break;
	case ZYGOTE_AGE: o->zygote_age_ms = number(name, 1000, 86400000); break;
	case ZYGOTE_COPIES: o->zygote_copies = (uint32_t)number(name, 1, 1u << 30); break;
	case CHECK: o->check = true; break;
	case HELP: fputs(help, stdout); exit(0);
	case VERSION: printf("jaild, protocol %d\n", PROTOCOL_VERSION); exit(0);
	default: fputs("jaild: see --help\n", stderr); exit(2);
	}
}

struct options options_parse(int argc, char **argv)
{
	struct options o = {
		.socket = "/run/svc/jaild.sock", .socket_mode = 0600, .slots = 8, .uid_base = 200000,
		.gid_base = 200000, .cgroup = "svc", .workspace_bytes = 512u << 20,
		.workspace_inodes = 65536, .tmp_bytes = 100u << 20, .shm_bytes = 64u << 20,
		.stream_bytes = STREAM_BYTES_MAX,
		.stage_ms = 150000, .fetch_ms = 120000, .tool_mount = "/run/svc",
		.zygote_age_ms = 600000, .zygote_copies = 2000,
	};
	int option, index = 0;

	while ((option = getopt_long(argc, argv, "", names, &index)) != -1)
		handle_option(&o, option, option == '?' ? "" : names[index].name);
	if (optind < argc || !o.root) {
		fputs("jaild: --root is needed and nothing but options is accepted (see --help)\n", stderr);
		exit(2);
	}
	if (o.no_cgroups && (o.memory_bytes > 0 || o.pids > 0)) {
		fputs("jaild: --memory-bytes and --pids need control groups (see --help)\n", stderr);
		exit(2);
	}
	check_zygotes(&o);
	if (o.ready == 0 || o.ready > o.slots)
		o.ready = o.slots;
	return o;
}
