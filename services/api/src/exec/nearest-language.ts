/** Guesses the language that a caller meant by an unknown name. Pure. */
import { findLanguage, LANGUAGES, type RuntimeInfo } from "@svc/contracts";
import { editDistance, nearestName } from "@svc/service-kit";

/** A comparison costs the product of both lengths, and the caller chooses the name. */
const MAX_NAME_CHARS = 32;
/** A name of two characters would match too many other names. */
const MIN_CHARS = 3;
const SHORT_CHARS = 4;

const NAMES = LANGUAGES.flatMap(({ lang, runner, aliases }) => [runner, lang, ...aliases]).filter(
  (name) => name.length >= MIN_CHARS,
);

/** Suggests only installed languages. Without `runtimes` it is not known what is installed, and any language may be suggested. */
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
