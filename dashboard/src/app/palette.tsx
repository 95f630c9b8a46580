import { useSignal } from '@preact/signals';
import { Dialog } from '../components/dialog.tsx';
import { visibleText } from '../format/visible-text.ts';
import { allCommands, type Command, isHelpOpen, isPaletteOpen } from './commands.ts';
import { messages } from '../messages/index.ts';

const text = messages.app;

const MAX_SHOWN = 12;

/** The command palette: type a part of a view, an action or a conversation. */
export function Palette() {
  const search = useSignal('');
  const index = useSignal(0);
  const words = search.value.trim().toLowerCase().split(/\s+/);
  const found = allCommands()
    .filter(({ title }) => words.every((word) => title.toLowerCase().includes(word)))
    .slice(0, MAX_SHOWN);
  const selected = Math.min(index.value, found.length - 1);
  const close = (): void => void (isPaletteOpen.value = false);
  function choose(command: Command | undefined): void {
    if (command === undefined) return;
    close();
    command.run();
  }
  return (
    <Dialog title={text.commands} onClose={close}>
      <div class="stack">
        <input
          class="input"
          type="search"
          autofocus
          role="combobox"
          aria-label={text.command}
          aria-expanded="true"
          aria-controls="palette-list"
          aria-activedescendant={selected < 0 ? undefined : `palette-${selected}`}
          placeholder={text.commandHint}
          value={search}
          onInput={(event) => {
            search.value = event.currentTarget.value;
            index.value = 0;
          }}
          onKeyDown={(event) => {
            if (event.key === 'ArrowDown') index.value = Math.min(selected + 1, found.length - 1);
            else if (event.key === 'ArrowUp') index.value = Math.max(selected - 1, 0);
            else if (event.key === 'Enter') choose(found[selected]);
            else return;
            event.preventDefault();
          }}
        />
        <ul class="palette" id="palette-list" role="listbox" aria-label={text.commands}>
          {found.map((command, i) => (
            <li
              key={i}
              id={`palette-${i}`}
              role="option"
              aria-selected={i === selected}
              onClick={() => choose(command)}
            >
              {visibleText(command.title)}
            </li>
          ))}
        </ul>
        {found.length === 0 && <p class="soft">{text.noCommand}</p>}
      </div>
    </Dialog>
  );
}

/** The keyboard shortcuts. */
export function ShortcutHelp() {
  return (
    <Dialog title={text.shortcuts} onClose={() => (isHelpOpen.value = false)}>
      <dl class="pairs">
        {text.shortcutList.map(({ keys, action }) => [
          <dt key={keys}>
            <kbd>{keys}</kbd>
          </dt>,
          <dd>{action}</dd>,
        ])}
      </dl>
    </Dialog>
  );
}
