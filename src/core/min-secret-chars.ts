/** Characters of a fleet secret: anyone who reads events could try to guess a shorter one. */
export const MIN_SECRET_CHARS = 32;
