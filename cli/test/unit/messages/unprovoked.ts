export const UNPROVOKED: string[] = [];
