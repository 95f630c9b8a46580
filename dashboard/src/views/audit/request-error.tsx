import { ApiError } from '../../api/errors.ts';
import { ErrorNotice, Notice } from '../../components/notice.tsx';
import { identity } from '../../app/session.ts';
import { visibleText } from '../../format/visible-text.ts';
import { messages } from '../../messages/index.ts';

const text = messages.audit;

/** Why a request cannot be shown. The server does not say whether another tenant has it. */
export function RequestError({ error, onRetry }: { error: unknown; onRetry: () => void }) {
  const isHidden = error instanceof ApiError && [400, 403, 404].includes(error.status);
  if (!isHidden) return <ErrorNotice error={error} onRetry={onRetry} />;
  return <Notice tone="warn">{text.notReadable(visibleText(identity.value?.tenant ?? ''))}</Notice>;
}
