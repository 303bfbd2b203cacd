/**
 * The commands that containers run in addition to the components (deploy/images/svc-component calls it): `init` writes the
 * settings of the containers, `jaild` becomes jaild, `health` checks the container's own component, `key` makes, lists and
 * revokes API keys.
 */
import { CommanderError, Command as Parser } from "commander";
import { key } from "../commands/key.ts";
import { splitRest, strict } from "../options.ts";
import { USAGE_EXIT_CODE } from "../problem.ts";
import { IN_CONTAINERS, meanContainers } from "../svc-line.ts";
import { problemOf } from "../unexpected.ts";
import { ownHealth } from "./health.ts";
import { init } from "./init.ts";
import { becomeJaild } from "./jaild.ts";

async function run(words: string[]): Promise<number> {
  const { before, rest } = splitRest(words);
  switch (before[0]) {
    case "init":
      init(process.env);
      return 0;
    case "jaild":
      return becomeJaild(process.env);
    case "health": {
      const problem = await ownHealth(process.env);
      if (problem !== undefined) console.error(problem);
      return problem === undefined ? 0 : 1;
    }
    case "key": {
      meanContainers();
      const parser = strict(new Parser(IN_CONTAINERS));
      key.addTo(parser, rest);
      await parser.parseAsync(before, { from: "user" });
      return Number(process.exitCode ?? 0);
    }
    default:
      console.error("error: init, jaild, health, key, or the name of a component");
      return USAGE_EXIT_CODE;
  }
}

try {
  process.exitCode = await run(process.argv.slice(2));
} catch (error) {
  // The help was requested and is printed.
  if (error instanceof CommanderError && error.exitCode === 0) process.exit(0);
  const { message, advice, exitCode } = problemOf(error);
  console.error(`error: ${message}${advice === undefined ? "" : `\n${advice}`}`);
  process.exitCode = exitCode;
}
