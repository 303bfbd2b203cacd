/* The command line of jaild, parsed once into one structure that never changes afterwards. */
#ifndef JAIL_OPTIONS_H
#define JAIL_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define SLOTS_MAX 1024
#define IDS_BELOW_BASE 16 /* reserved ids; keepers and zygotes use the first (userns.h) */
#define STREAM_BYTES_MAX (64u << 20)
#define TOOL_MOUNT_PARENT "/run/"
#define ZYGOTES_MAX 8
#define ZYGOTE_WORDS_MAX 64

/* The fork server of one interpreter. */
struct zygote_options {
	const char *name, *script;
	const char *argv[ZYGOTE_WORDS_MAX + 1], *env[ZYGOTE_WORDS_MAX + 1]; /* as a program's */
	unsigned argc, envc;
};

struct options {
	const char *socket;
	uid_t socket_uid;
	gid_t socket_gid;
	mode_t socket_mode;
	const char *root;
	unsigned slots;
	unsigned ready; /* jails that are ready or running; paused ones are extra */
	uid_t uid_base;
	gid_t gid_base;
	const char *cgroup;
	const char *cgroup_base; /* NULL: the group that jaild was started in */
	bool no_cgroups;
	uint64_t memory_bytes, pids; /* of all jails together; 0 = no limit */
	unsigned cpu_percent; /* of one processor, per run; 0 = no quota */
	uint64_t workspace_bytes, workspace_inodes, tmp_bytes, shm_bytes;
	uint64_t stream_bytes; /* ceiling of what a client may capture of one output stream */
	uint64_t stage_ms; /* timeout from accept to RUN */
	uint64_t fetch_ms; /* timeout without progress after the end of the run */
	const char *tool_directory; /* NULL: none */
	const char *tool_mount;
	unsigned zygotes;
	struct zygote_options zygote[ZYGOTES_MAX];
	uint64_t zygote_age_ms;
	uint32_t zygote_copies;
	bool check;
};

/* Parses, or ends the process: with status 0 for --help and --version, 2 for an invalid command line. */
struct options options_parse(int argc, char **argv);

#endif
