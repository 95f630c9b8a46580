import { useSignal } from '@preact/signals';
import type { ComponentType } from 'preact';
import { useEffect, useErrorBoundary } from 'preact/hooks';
import { ErrorNotice } from '../components/notice.tsx';
import { Loading } from '../components/loading.tsx';
import type { View, ViewProps } from './views.ts';
import { messages } from '../messages/index.ts';

/** Loads the code of a view on demand; a failure inside the view leaves the navigation usable. */
export function LazyView({ view, path }: ViewProps & { view: View }) {
  const Page = useSignal<ComponentType<ViewProps> | null>(null);
  const failure = useSignal<unknown>(null);
  const [renderError, reset] = useErrorBoundary();

  function load(): void {
    failure.value = null;
    view.load().then(
      (module) => (Page.value = module.default),
      (error: unknown) => (failure.value = error),
    );
  }
  useEffect(load, [view]);

  const error: unknown = renderError ?? failure.value;
  if (error != null) {
    const retry = (): void => {
      reset();
      load();
    };
    return (
      <div class="page">
        <ErrorNotice error={error} onRetry={retry} />
      </div>
    );
  }
  if (Page.value === null) return <Loading label={messages.app.loadingView(view.title)} />;
  return <Page.value path={path} />;
}
