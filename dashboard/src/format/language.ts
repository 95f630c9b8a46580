/** The languages of the page, each by its own name. */
export const LANGUAGES = { en: 'English', de: 'Deutsch', zh: '中文' } as const;
export type Language = keyof typeof LANGUAGES;

const STORAGE_KEY = 'ruvllm.language';
const isLanguage = (tag: string | null | undefined): tag is Language => tag != null && Object.hasOwn(LANGUAGES, tag);

/** The user's choice, else the browser's first language that the page has, else English. */
export function chooseLanguage(stored: string | null, preferred: readonly string[]): Language {
  if (isLanguage(stored)) return stored;
  return preferred.map((tag) => tag.toLowerCase().split('-')[0]).find(isLanguage) ?? 'en';
}

/** The language of the page until it is loaded again. Unit tests run without a browser, in English. */
export const language: Language =
  typeof document === 'undefined' ? 'en' : chooseLanguage(localStorage.getItem(STORAGE_KEY), navigator.languages);

/** Loads the page again in another language: texts are read when modules are loaded. */
export function setLanguage(choice: Language): void {
  localStorage.setItem(STORAGE_KEY, choice);
  location.reload();
}
