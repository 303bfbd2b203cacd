import { requireMatches } from "@svc/tools/testing/filters";
import { expect, test } from "vitest";

const only = (suite: string) => (other: string) => other === suite;

test("a filter that picks a file of a chosen suite is accepted, in the virtual machine too", async () => {
  const file = "jail-client/test/live/pause";
  await expect(requireMatches([file, "test/live"], only("live"))).resolves.toBeUndefined();
  await expect(requireMatches([file], only("v2"))).resolves.toBeUndefined();
  await expect(requireMatches(["launcher/test/microvm"], only("kvm"))).resolves.toBeUndefined();
});

test("a filter that picks files of other suites only is refused, with the commands that run them", async () => {
  const file = "tests/escape/resources/memory.slow.test.ts";
  await expect(requireMatches(["tests/escape/disk", file], only("escape"))).rejects.toMatchObject({
    message: `no test file of escape has ${file} in its path`,
    advice: `Run it with its suite: ./svc test --slow ${file}`,
  });
  await expect(requireMatches(["tests/v2/"], only("live"))).rejects.toMatchObject({
    advice: "Run it with its suite: ./svc test --v2 tests/v2/",
  });
});

test("a filter that is part of no path is refused, and the message says what a filter is", async () => {
  const wanted = (suite: string) => suite === "unit" || suite === "live";
  await expect(requireMatches(["no such file"], wanted)).rejects.toMatchObject({
    message: "no test file of unit, live has 'no such file' in its path",
    advice: expect.stringMatching(/^FILTER is a part of the path of a test file/),
  });
});
