/*
 * jaild: parses its options, makes what all runs share, and enters the loop of the slots. See jail.h for the theory of
 * operation.
 */
#include "cgroup/cgroup.h"
#include "check/check.h"
#include "files/tooldir.h"
#include "init/capability.h"
#include "init/confine.h"
#include "init/template.h"
#include "keeper/pulse.h"
#include "lib/descriptors.h"
#include "lib/title.h"
#include "lib/util.h"
#include "master/listener.h"
#include "master/options.h"
#include "master/oom.h"
#include "master/slot.h"
#include "seccomp/seccomp.h"
#include "warm/prestarted.h"
#include "warm/zygote.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

static struct seccomp_program policy, keeper_policy, host_policy;
static struct options options;

/* Runs at every exit, also after a failed start: nothing that this master made may stay. */
static void clean_up(void)
{
	listener_remove(&options);
	cgroups_remove();
	tooldir_remove();
}

/* check_kernel and check_groups have logged the reasons. */
static _Noreturn void refuse(void)
{
	errno = 0;
	fatal("no safe jail can be made on this machine");
}

int main(int argc, char **argv)
{
	struct jail_config config = {.options = &options, .policy = &policy, .keeper_policy = &keeper_policy};
	int listener;

	if (descriptors_begin() < 0)
		fatal("cannot close inherited descriptors");
	title_remember(argc, argv);
	options = options_parse(argc, argv);
	if (geteuid() != 0) {
		errno = EPERM;
		fatal("jaild needs root");
	}
	if (options.check)
		return check_system(&options) ? 0 : 1;
	signal(SIGPIPE, SIG_IGN);
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		fatal("cannot set up the process");
	oom_kill_last();
	if (!check_kernel(&options))
		refuse();
	/* A ceiling for all processes below, which cannot raise their limits. */
	if (confine_limits() < 0)
		fatal("cannot set the resource limits");
	if (!seccomp_build(&policy) || !seccomp_build_for(&keeper_policy, POLICY_OF_KEEPERS) ||
	    !seccomp_build_for(&host_policy, POLICY_OF_ALL))
		fatal("a system call policy does not fit");
	slots_block_signals();
	atexit(clean_up);
	cgroups_make(&options);
	if (!check_groups(&options))
		refuse();
	tooldir_make(&options);
	template_make(&options, &config.template, &config.userns);
	listener = listener_open(&options);
	log_line(LOG_INFO, -1, 0, "listening on %s, %u slots, control groups %s", options.socket, options.slots,
		 cgroups_version());
	pulse_open();
	config.prestarted_object = prestarted_object_make();
	config.queues = zygotes_open(&options);
	if (bounding_set_keep(0) < 0 || capabilities_keep(FILE_CAPABILITIES) < 0 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || seccomp_load(&host_policy) < 0)
		fatal("cannot drop privileges");
	slots_run(&config, listener);
	log_line(LOG_INFO, -1, 0, "ended");
	return 0;
}
