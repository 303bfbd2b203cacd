#include "keeper/reached.h"

#include "keeper/frame.h"
#include "keeper/jail.h"
#include "lib/util.h"

#include <sys/vfs.h>

void reached_look_at_files(struct reached *reached, const struct jail *jail)
{
	const struct {
		int mount;
		enum reached_kind bytes, files;
	} looks[] = {
		{jail->workspace, REACHED_WORKSPACE_BYTES, REACHED_WORKSPACE_FILES},
		{jail->tmp, REACHED_TMP_BYTES, REACHED_TMP_FILES},
		{jail->shm, REACHED_SHM_BYTES, REACHED_SHM_FILES},
	};
	struct statfs st;

	for (size_t i = 0; i < COUNT(looks); i++) {
		if (fstatfs(looks[i].mount, &st) < 0)
			continue;
		if (st.f_bfree == 0)
			reached->limit[looks[i].bytes] = (uint64_t)st.f_blocks * (uint64_t)st.f_bsize;
		if (st.f_ffree == 0)
			reached->limit[looks[i].files] = (uint64_t)st.f_files;
	}
}

void reached_look_at_processes(struct reached *reached, const struct jail *jail, const struct limits *limits)
{
	uint64_t refused;

	if (jail->cgroup.enabled && cgroup_forks_refused(&jail->cgroup, &refused) == 0 && refused > 0)
		reached->limit[REACHED_PROCESSES] = limits->pids;
}
