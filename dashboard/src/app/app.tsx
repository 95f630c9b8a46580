import { ErrorNotice } from '../components/notice.tsx';
import { Loading } from '../components/loading.tsx';
import { clearToasts, Toasts } from '../components/toast.tsx';
import { Frame } from './frame.tsx';
import { onSignOut, sessionNotice, sessionState, startSession } from './session.ts';
import { SignIn } from './sign-in.tsx';
import { messages } from '../messages/index.ts';

onSignOut(clearToasts);

/** The whole page: the sign-in form, or the frame with its views. */
export function App() {
  return (
    <>
      {page(sessionState.value)}
      <Toasts />
    </>
  );
}

function page(state: typeof sessionState.value) {
  if (state === 'signed-in') return <Frame />;
  if (state === 'signed-out') return <SignIn />;
  return (
    <main class="sign-in">
      {state === 'starting' ? (
        <Loading label={messages.app.connecting} />
      ) : (
        <ErrorNotice error={sessionNotice.value} onRetry={() => void startSession()} />
      )}
    </main>
  );
}
