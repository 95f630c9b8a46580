import { useEffect, useRef } from 'preact/hooks';
import { addCommands, handleShortcut, isHelpOpen, isPaletteOpen } from './commands.ts';
import { Button } from '../components/button.tsx';
import { Icon } from '../components/icon.tsx';
import { type Language, language, LANGUAGES, setLanguage } from '../format/language.ts';
import { visibleText } from '../format/visible-text.ts';
import { Brand } from './brand.tsx';
import { LazyView } from './lazy-view.tsx';
import { Palette, ShortcutHelp } from './palette.tsx';
import { goTo, hrefOf, route } from './router.ts';
import { identity, isServerEmpty, permissions, signOut } from './session.ts';
import { nextTheme, theme } from './theme.ts';
import { startTour, Tour, tourTarget } from './tour.tsx';
import { VIEWS } from './views.ts';
import { messages } from '../messages/index.ts';

const text = messages.app;

const languages = Object.entries(LANGUAGES) as [Language, string][];
const openViews = () => VIEWS.filter((view) => view.isOpenTo(permissions.value));

addCommands(() => [
  ...openViews().map(({ id, title }) => ({ title: text.goTo(title), run: () => goTo(id) })),
  { title: text.changeTheme, run: nextTheme },
  ...(isServerEmpty() ? [] : [{ title: text.startTour, run: startTour }]),
  ...languages.map(([code, name]) => ({ title: text.setLanguage(name), run: () => setLanguage(code) })),
  { title: text.showShortcuts, run: () => void (isHelpOpen.value = true) },
  ...(identity.value?.key == null ? [] : [{ title: text.signOut, run: () => signOut() }]),
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
        {text.skip}
      </a>
      <header class="side">
        <Brand />
        <nav aria-label={text.views}>
          <ul class="nav-list">
            {views.map(({ id, title, icon }) => (
              <li key={id}>
                <a
                  class="nav-link"
                  href={hrefOf(id)}
                  aria-current={id === view.id ? 'page' : undefined}
                  data-tour={id === tourTarget.value ? '' : undefined}
                >
                  <Icon name={icon} />
                  {title}
                </a>
              </li>
            ))}
          </ul>
        </nav>
        <Tour />
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
        <strong>{key === null ? text.openServer : visibleText(key.name)}</strong>
        {key === null ? text.noKey : identity.value!.scopes.join(', ')}
      </div>
      <a class="small" href="/docs/">
        {text.documentation}
      </a>
      <div class="side-actions" data-tour={tourTarget.value === 'commands' ? '' : undefined}>
        <Button kind="plain" icon="search" label={text.openPalette} onClick={() => (isPaletteOpen.value = true)} />
        <Button
          kind="plain"
          icon={themeIcon}
          label={text.changeThemeFrom(text.themes[theme.value])}
          onClick={nextTheme}
        />
        <LanguageMenu />
        {key !== null && <Button kind="plain" icon="sign-out" label={text.signOut} onClick={() => signOut()} />}
      </div>
    </div>
  );
}

/** An icon that covers the browser's own menu of languages. */
function LanguageMenu() {
  return (
    <label class="button plain icon-only icon-select" title={text.language}>
      <Icon name="language" />
      <select
        aria-label={text.language}
        value={language}
        onChange={({ currentTarget }) => setLanguage(currentTarget.value as Language)}
      >
        {languages.map(([code, name]) => (
          <option key={code} value={code} lang={code}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}
