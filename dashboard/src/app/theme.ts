import { effect, signal } from '@preact/signals';

export const THEMES = ['auto', 'light', 'dark'] as const;
export type Theme = (typeof THEMES)[number];

const STORAGE_KEY = 'ruvllm.theme';
const storedTheme = localStorage.getItem(STORAGE_KEY);

/** The selected theme; `auto` follows the system. */
export const theme = signal<Theme>(THEMES.find((name) => name === storedTheme) ?? 'auto');
/** Incremented when the colours may have changed, so that canvases are redrawn. */
export const themeChanges = signal(0);

effect(() => {
  const name = theme.value;
  if (name === 'auto') delete document.documentElement.dataset['theme'];
  else document.documentElement.dataset['theme'] = name;
  localStorage.setItem(STORAGE_KEY, name);
  themeChanges.value = themeChanges.peek() + 1;
});
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => themeChanges.value++);

export function nextTheme(): void {
  theme.value = THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length]!;
}
