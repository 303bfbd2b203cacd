/** Whether a caller wants to be answered before the run has ended: `Prefer: respond-async` (RFC 7240, section 4.1). Pure. */
export function prefersJob(prefer: string | string[] | undefined): boolean {
  return [prefer ?? []]
    .flat()
    .flatMap((value) => value.split(","))
    .some((preference) => preference.split(";")[0]?.trim().toLowerCase() === "respond-async");
}
