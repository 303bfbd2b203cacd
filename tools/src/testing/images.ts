/** The images that the tests of the containers run, as deploy/images/build makes them of this working copy, and the client that calls them. */
import { join } from "node:path";
import { ROOT } from "@svc/cli/instance";
import { mustRun } from "@svc/cli/system/run";
import type { Note } from "@svc/cli/terminal";
import { requirePodman } from "@svc/test-kit/containers/podman";
import { installTestClient } from "./client.ts";

/** Throws where podman or what builds images is missing. Bases that are there are used again. */
export async function buildTestImages(note: Note): Promise<void> {
  requirePodman();
  await installTestClient(note);
  await mustRun([join(ROOT, "deploy/images/build")], "building the images", { onLine: note });
}
