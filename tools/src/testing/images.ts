/** The images that the tests of the containers run, as deploy/images/build makes them of this working copy. */
import { join } from "node:path";
import { ROOT } from "@svc/cli/instance";
import { mustRun } from "@svc/cli/system/run";
import type { Note } from "@svc/cli/terminal";
import { requirePodman } from "@svc/test-kit/containers/podman";

/** Throws where podman or what builds images is missing. Bases that are there are used again. */
export async function buildTestImages(note: Note): Promise<void> {
  requirePodman();
  await mustRun([join(ROOT, "deploy/images/build")], "building the images", { onLine: note });
}
