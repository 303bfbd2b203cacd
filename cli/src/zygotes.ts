/** The fork servers and pre-started interpreters of the image, as options of jaild. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { prestartedPoolSize, warmPoolSize } from "@svc/contracts";
import { VARIABLES } from "@svc/service-kit/config/variables";
import type { Instance } from "./instance.ts";

interface Manifest {
  runtimes: {
    env: Record<string, string>;
    zygotes?: { name: string; script: string; argv: string[] }[];
    prestarted?: { least: number };
  }[];
}

/** `waiting`: how many jails the runner may keep waiting. */
export function zygotesOf(
  { image }: Pick<Instance, "image">,
  caller: Readonly<Record<string, string | undefined>>,
): { waiting: number; options: string[] } {
  const given = <T>(
    name: keyof typeof VARIABLES,
    variable: { parse: (text: string) => T; fallback: T },
  ): T => (caller[name] ? variable.parse(caller[name]) : variable.fallback);
  const size = warmPoolSize({
    SANDBOX_WARM_START: given("SANDBOX_WARM_START", VARIABLES.SANDBOX_WARM_START),
    SANDBOX_WARM_POOL: given("SANDBOX_WARM_POOL", VARIABLES.SANDBOX_WARM_POOL),
    SANDBOX_MAX_CONCURRENT_JOBS: given("SANDBOX_MAX_CONCURRENT_JOBS", VARIABLES.SANDBOX_MAX_CONCURRENT_JOBS),
  });
  if (size === 0) return { waiting: 0, options: [] };
  const manifest: Manifest = JSON.parse(readFileSync(join(image, "runtimes.json"), "utf8"));
  const zygotes = manifest.runtimes.flatMap(({ env, zygotes: own = [] }) =>
    own.map((zygote) => ({ ...zygote, env })),
  );
  const options = zygotes.flatMap(({ name, script, argv, env }) => [
    ...["--zygote", name, "--zygote-script", script],
    ...argv.flatMap((word) => ["--zygote-argument", word]),
    ...Object.entries(env).flatMap(([variable, value]) => ["--zygote-variable", `${variable}=${value}`]),
  ]);
  const prestarted = manifest.runtimes.flatMap((runtime) => runtime.prestarted ?? []);
  const least = prestarted.map((kind) => kind.least);
  return {
    waiting: size * zygotes.length + (prestarted.length > 0 ? prestartedPoolSize(size, least) : 0),
    options,
  };
}
