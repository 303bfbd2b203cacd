/** Quotes a text as one word, in a form that bash, zsh and fish read alike. Pure. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
