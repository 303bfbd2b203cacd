/** Where jails go on cgroup v2, by what is known of the groups. */
import { type Group, placeOf } from "@svc/cli/system/jails-group";
import { expect, test } from "vitest";

const ALL = ["cpuset", "cpu", "io", "memory", "pids"];
const TOP: Group = { path: "/sys/fs/cgroup", isRoot: true, controllers: ALL, processes: ["1", "2"] };
const group = (path: string, controllers: string[], processes: string[]): Group => ({
  path: `/sys/fs/cgroup/${path}`,
  isRoot: false,
  controllers,
  processes,
});

test("in the root group jaild finds its place by itself", () => {
  expect(placeOf(TOP, TOP, "7")).toEqual({ base: undefined });
});

test("in a group of its own, as systemd delegates one, the supervisor steps aside", () => {
  const own = group("system.slice/svc.service", ALL, ["7"]);
  expect(placeOf(own, TOP, "7")).toEqual({ base: own.path, aside: `${own.path}/services` });
});

test("in a login session the jails go below the root", () => {
  const shared = group("user.slice/user-0.slice/session-1.scope", ALL, ["5", "6", "7"]);
  expect(placeOf(shared, TOP, "7")).toEqual({ base: TOP.path });
  const without = group("user.slice/user-0.slice/session-1.scope", ["memory", "pids"], ["7"]);
  expect(placeOf(without, TOP, "7")).toEqual({ base: TOP.path });
});

test("in a container's shared group nothing can be found, and jaild says why", () => {
  const own = group("", ALL, ["1", "7"]);
  expect(placeOf(own, own, "7")).toEqual({ base: undefined });
});
