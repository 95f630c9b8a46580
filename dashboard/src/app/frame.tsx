import { useEffect, useRef } from 'preact/hooks';
import { Button } from '../components/button.tsx';
import { Icon } from '../components/icon.tsx';
import { visibleText } from '../format/visible-text.ts';
import { Brand } from './brand.tsx';
import { OpenedView } from './opened-view.tsx';
import { hrefOf, route } from './router.ts';
import { allows, signOut, who } from './session.ts';
import { nextTheme, theme } from './theme.ts';
import { VIEWS } from './views.ts';

/** Navigation on the left, the opened view beside it. */
export function Frame() {
  const views = VIEWS.filter((view) => view.isOpenTo(allows.value));
  const [name, ...path] = route.value;
  const view = views.find(({ id }) => id === name) ?? views[0]!;
  const main = useRef<HTMLElement>(null);
  const isFirst = useRef(true);

  useEffect(() => {
    document.title = `${view.title} · RuvLLM`;
    // Whoever follows a link with the keyboard goes on reading there; on the first page nobody has followed one.
    if (!isFirst.current) main.current?.focus();
    isFirst.current = false;
  }, [view]);

  return (
    <div class="shell">
      <a
        class="skip-link"
        href="#main"
        onClick={(event) => {
          event.preventDefault(); // the address behind # is the view's
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
        <OpenedView key={view.id} view={view} path={path} />
      </main>
    </div>
  );
}

function SideFoot() {
  const themeIcon = ({ auto: 'theme-auto', light: 'sun', dark: 'moon' } as const)[theme.value];
  const key = who.value?.key ?? null;
  return (
    <div class="side-foot">
      <div class="who">
        <strong>{key === null ? 'Open server' : visibleText(key.name)}</strong>
        {key === null ? 'no key needed' : who.value!.scopes.join(', ')}
      </div>
      <div class="side-actions">
        <Button kind="plain" icon={themeIcon} label={`Theme: ${theme.value}. Change`} onClick={nextTheme} />
        {key !== null && <Button kind="plain" icon="leave" label="Sign out" onClick={() => signOut()} />}
      </div>
    </div>
  );
}
