import { en, type Messages } from './en/index.ts';
import { language } from '../format/language.ts';

const LOADERS: Readonly<Record<typeof language, () => Messages | Promise<Messages>>> = {
  en: () => en,
  de: async () => (await import('./de/index.ts')).de,
  zh: async () => (await import('./zh/index.ts')).zh,
};

/** Every text of the page. Modules that import it wait until its language is loaded. */
export const messages: Messages = await LOADERS[language]();
if (typeof document !== 'undefined') document.documentElement.lang = language;
