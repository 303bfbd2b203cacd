/** Health check of a container: tells whether its component is alive. */
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { HEALTH, JAILD } from "../components.ts";
import { addressOf, SERVICES } from "../instance.ts";
import { httpAnswers, socketExists } from "../probes.ts";
import type { Environment } from "../settings.ts";
import { containerInstance } from "./place.ts";

/** Finds the component in a command line: a service by its bundle, jaild by its program. Pure. */
export function componentOf(words: readonly string[]): (typeof SERVICES)[number] | "jaild" | undefined {
  if (words[0] === JAILD) return "jaild";
  const bundles = words.filter((word) => word.endsWith(".mjs")).map((word) => basename(word, ".mjs"));
  return SERVICES.find((service) => bundles.includes(service));
}

/** Returns undefined when the component answers, otherwise a short reason. */
export async function ownHealth(env: Environment): Promise<string | undefined> {
  const component = componentOf(readFileSync("/proc/1/cmdline", "utf8").split("\0"));
  if (component === undefined) return "the first process is no component";
  const instance = containerInstance(env);
  if (component === "jaild") return socketExists(instance.jailSocket);
  return httpAnswers(`${addressOf(component, instance)}${HEALTH[component]}`);
}
