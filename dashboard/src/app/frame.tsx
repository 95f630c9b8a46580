import { useEffect, useRef } from 'preact/hooks';
import { addCommands, handleShortcut, isHelpOpen, isPaletteOpen } from './commands.ts';
import { Button } from '../components/button.tsx';
import { Icon } from '../components/icon.tsx';
import { visibleText } from '../format/visible-text.ts';
import { Brand } from './brand.tsx';
import { LazyView } from './lazy-view.tsx';
import { Palette, ShortcutHelp } from './palette.tsx';
import { goTo, hrefOf, route } from './router.ts';
import { identity, permissions, signOut } from './session.ts';
import { nextTheme, theme } from './theme.ts';
import { VIEWS } from './views.ts';

const openViews = () => VIEWS.filter((view) => view.isOpenTo(permissions.value));

addCommands(() => [
  ...openViews().map(({ id, title }) => ({ title: `Go to ${title}`, run: () => goTo(id) })),
  { title: 'Change theme', run: nextTheme },
  { title: 'Show keyboard shortcuts', run: () => void (isHelpOpen.value = true) },
  ...(identity.value?.key == null ? [] : [{ title: 'Sign out', run: () => signOut() }]),
]);

const SHORTCUT_ACTIONS = {
  openView(index: number): void {
    const view = openViews()[index];
    if (view !== undefined) goTo(view.id);
  },
  startChat: () => goTo('chat', 'new'),
};

/** The navigation on the left and the current view beside it. */
export function Frame() {
  const views = openViews();
  const [name, ...path] = route.value;
  const view = views.find(({ id }) => id === name) ?? views[0]!;
  const main = useRef<HTMLElement>(null);
  const isFirst = useRef(true);

  useEffect(() => {
    document.title = `${view.title} · RuvLLM`;
    // After a navigation, keyboard users continue in the new view; the initial view keeps the default focus.
    if (!isFirst.current) main.current?.focus();
    isFirst.current = false;
  }, [view]);

  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => handleShortcut(event, SHORTCUT_ACTIONS);
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);

  return (
    <div class="shell">
      <a
        class="skip-link"
        href="#main"
        onClick={(event) => {
          event.preventDefault(); // the URL fragment selects the view
          main.current?.focus();
        }}
      >
        Skip to content
      </a>
      <header class="side">
        <Brand />
        <nav aria-label="Views">
          <ul class="nav-list">
            {views.map(({ id, title, icon }) => (
              <li key={id}>
                <a class="nav-link" href={hrefOf(id)} aria-current={id === view.id ? 'page' : undefined}>
                  <Icon name={icon} />
                  {title}
                </a>
              </li>
            ))}
          </ul>
        </nav>
        <SideFoot />
      </header>
      <main class="main" id="main" ref={main} tabIndex={-1}>
        <LazyView key={view.id} view={view} path={path} />
      </main>
      {isPaletteOpen.value && <Palette />}
      {isHelpOpen.value && <ShortcutHelp />}
    </div>
  );
}

function SideFoot() {
  const themeIcon = ({ auto: 'theme-auto', light: 'sun', dark: 'moon' } as const)[theme.value];
  const key = identity.value?.key ?? null;
  return (
    <div class="side-foot">
      <div class="who">
        <strong>{key === null ? 'Open server' : visibleText(key.name)}</strong>
        {key === null ? 'no API key required' : identity.value!.scopes.join(', ')}
      </div>
      <a class="small" href="/docs/">
        Documentation
      </a>
      <div class="side-actions">
        <Button kind="plain" icon="search" label="Commands (Ctrl K)" onClick={() => (isPaletteOpen.value = true)} />
        <Button kind="plain" icon={themeIcon} label={`Change theme (current: ${theme.value})`} onClick={nextTheme} />
        {key !== null && <Button kind="plain" icon="sign-out" label="Sign out" onClick={() => signOut()} />}
      </div>
    </div>
  );
}
