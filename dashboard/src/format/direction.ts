/** Right-to-left scripts. */
const RIGHT_TO_LEFT =
  /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}\p{Script=Adlam}]/u;
const LETTER = /\p{L}/u;
/** The first letter decides; later characters are not searched for one. */
const MAX_SEARCHED_CHARS = 200;

/** Returns the text direction, for input fields: with `dir="auto"` Chromium takes half a minute to lay out a megabyte. */
export function directionOf(text: string): 'ltr' | 'rtl' {
  const firstLetter = LETTER.exec(text.slice(0, MAX_SEARCHED_CHARS))?.[0] ?? '';
  return RIGHT_TO_LEFT.test(firstLetter) ? 'rtl' : 'ltr';
}
