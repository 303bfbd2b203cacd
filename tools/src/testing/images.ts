/** The images for the tests of the containers, made from this working copy by deploy/images/build, and the client that calls them. */
import { join } from "node:path";
import { ROOT } from "@svc/cli/instance";
import { mustRun } from "@svc/cli/system/run";
import type { Note } from "@svc/cli/terminal";
import { requirePodman } from "@svc/test-kit/containers/podman";
import { installTestClient } from "./client.ts";

/** Throws where podman, or something else that builds need, is missing. Existing base images are reused. */
export async function buildTestImages(note: Note): Promise<void> {
  requirePodman();
  await installTestClient(note);
  await mustRun([join(ROOT, "deploy/images/build")], "building the images", { onLine: note });
}
