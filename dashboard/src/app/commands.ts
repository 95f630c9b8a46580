import { signal } from '@preact/signals';

/** An action of the command palette. */
export interface Command {
  readonly title: string;
  readonly run: () => void;
}

/** Returns the commands that are possible now. */
type CommandSource = () => readonly Command[];

const sources = new Set<CommandSource>();
export const isPaletteOpen = signal(false);
export const isHelpOpen = signal(false);

/** Adds commands of a view; they stay when another view is shown. */
export function addCommands(source: CommandSource): void {
  sources.add(source);
}

export const allCommands = (): readonly Command[] => [...sources].flatMap((source) => source());

/** Whether a key press belongs to a text field. */
const isTyping = ({ target }: KeyboardEvent): boolean =>
  target instanceof HTMLElement && (target.isContentEditable || /^(?:INPUT|TEXTAREA|SELECT)$/.test(target.tagName));

/** Handles the shortcuts of the whole page; `openView` gets the position in the navigation, `startChat` starts a conversation. */
export function handleShortcut(
  event: KeyboardEvent,
  { openView, startChat }: { openView: (index: number) => void; startChat: () => void },
): void {
  const { key, code, ctrlKey, metaKey, altKey } = event;
  const digit = /^Digit([1-9])$/.exec(code);
  if ((ctrlKey || metaKey) && key.toLowerCase() === 'k') isPaletteOpen.value = true;
  else if (altKey && digit !== null) openView(Number(digit[1]) - 1);
  // With Alt, keyboards of Apple type another letter.
  else if (altKey && code === 'KeyN') startChat();
  else if (key === '?' && !isTyping(event)) isHelpOpen.value = true;
  else return;
  event.preventDefault();
}
