/** Debian's Chromium, without sandbox (tests run as root, and it sees pages of ours alone) and without traffic of its own. */
import { findProgram } from "@svc/cli/system/root";
import { mustRun } from "@svc/cli/system/run";
import { type Browser, chromium } from "playwright-core";

/** It needs libraries that few systems have, so it is installed where it is missing. */
export async function startChromium(): Promise<Browser> {
  if (findProgram("chromium") === undefined) {
    await mustRun(["apt-get", "update"], "updating the lists of packages");
    await mustRun(["apt-get", "install", "-y", "--no-install-recommends", "chromium"], "installing chromium");
  }
  return await chromium.launch({
    executablePath: findProgram("chromium") ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
}
