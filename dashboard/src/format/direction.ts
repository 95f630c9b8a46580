/** Scripts that are written from right to left. */
const RIGHT_TO_LEFT =
  /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}\p{Script=Adlam}]/u;
const LETTER = /\p{L}/u;
/** The first letter decides; who begins with more signs than this has not begun. */
const LOOKED_AT = 200;

/** Where a text begins. For fields: `dir="auto"` has Chromium lay out a megabyte for half a minute. */
export function directionOf(text: string): 'ltr' | 'rtl' {
  const first = LETTER.exec(text.slice(0, LOOKED_AT))?.[0] ?? '';
  return RIGHT_TO_LEFT.test(first) ? 'rtl' : 'ltr';
}
