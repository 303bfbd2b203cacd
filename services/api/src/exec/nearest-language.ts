/** What a caller probably meant by an unknown name of a language. Pure. */
import { findLanguage, LANGUAGES, type RuntimeInfo } from "@svc/contracts";
import { editDistance, nearestName } from "@svc/service-kit";

/** The comparison takes the product of both lengths, and the name is a caller's. */
const MAX_NAME_CHARS = 32;
/** Everything is near to a name of two characters. */
const MIN_CHARS = 3;
const SHORT_CHARS = 4;

const NAMES = LANGUAGES.flatMap(({ lang, runner, aliases }) => [runner, lang, ...aliases]).filter(
  (name) => name.length >= MIN_CHARS,
);

/** Only what is installed is suggested; undefined: that is not known. */
export function nearestLanguage(
  name: string,
  runtimes: readonly RuntimeInfo[] | undefined,
): string | undefined {
  if (name.length > MAX_NAME_CHARS) return undefined;
  const wanted = name.trim().toLowerCase();
  if (findLanguage(wanted) !== undefined) return wanted;
  const isInstalled = (known: string) =>
    runtimes?.some(({ language }) => language === findLanguage(known)?.runner) ?? true;
  const nearest = nearestName(wanted, NAMES.filter(isInstalled));
  return editDistance(wanted, nearest) <= (nearest.length > SHORT_CHARS ? 2 : 1) ? nearest : undefined;
}
