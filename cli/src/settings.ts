/** Values of the documented variables, for decisions that are made before a component reads them. Pure. */
import { VARIABLES, type VariableName } from "@svc/service-kit/config/variables";

export type Environment = Readonly<Record<string, string | undefined>>;

/** An invalid value counts as the default here. The component that refuses to start with it names it. */
export function settingOf<Name extends VariableName>(
  name: Name,
  caller: Environment,
): (typeof VARIABLES)[Name]["fallback"] {
  const variable = VARIABLES[name] as {
    parse: (text: string) => (typeof VARIABLES)[Name]["fallback"];
    fallback: (typeof VARIABLES)[Name]["fallback"];
  };
  const text = caller[name];
  try {
    return text ? variable.parse(text) : variable.fallback;
  } catch {
    return variable.fallback;
  }
}
