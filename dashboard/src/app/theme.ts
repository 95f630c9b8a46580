import { effect, signal } from '@preact/signals';

export const THEMES = ['auto', 'light', 'dark'] as const;
export type Theme = (typeof THEMES)[number];

const PLACE = 'ruvllm.theme';
const stored = localStorage.getItem(PLACE);

/** The theme that was chosen; `auto` follows the system. */
export const theme = signal<Theme>(THEMES.find((name) => name === stored) ?? 'auto');
/** Counts how often the colours may have changed: what is drawn on a canvas is drawn again. */
export const themeChanges = signal(0);

effect(() => {
  const chosen = theme.value;
  if (chosen === 'auto') delete document.documentElement.dataset['theme'];
  else document.documentElement.dataset['theme'] = chosen;
  localStorage.setItem(PLACE, chosen);
  themeChanges.value = themeChanges.peek() + 1;
});
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => themeChanges.value++);

export function nextTheme(): void {
  theme.value = THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length]!;
}
