import { Button } from '../../components/button.tsx';
import { Notice } from '../../components/notice.tsx';
import { visibleText } from '../../format/visible-text.ts';
import {
  conversations,
  currentId,
  isKept,
  keepConversations,
  keepFailure,
  removeConversation,
  startConversation,
  titleOf,
} from './store.ts';

/** The conversations of this page, and whether they outlive it. */
export function ConversationList({ onChosen = () => {} }: { onChosen?: () => void }) {
  const begin = (): void => {
    startConversation();
    onChosen();
  };
  return (
    <div class="conversations">
      <Button icon="plus" onClick={begin}>
        New conversation
      </Button>
      <ul>
        {conversations.value.map((one) => (
          <li key={one.id} class="conversation" data-current={one.id === currentId.value ? '' : undefined}>
            <button
              type="button"
              aria-current={one.id === currentId.value ? 'true' : undefined}
              onClick={() => {
                currentId.value = one.id;
                onChosen();
              }}
            >
              <span dir="auto">{visibleText(titleOf(one))}</span>
            </button>
            {one.messages.length > 0 && (
              <Button
                kind="plain"
                isSmall
                icon="trash"
                label={`Remove ${visibleText(titleOf(one))}`}
                onClick={() => removeConversation(one.id)}
              />
            )}
          </li>
        ))}
      </ul>
      <label class="check small">
        <input
          type="checkbox"
          checked={isKept.value}
          onChange={(event) => keepConversations(event.currentTarget.checked)}
        />
        <span>Keep them in this browser</span>
      </label>
      {keepFailure.value !== '' && <Notice tone="warn">{keepFailure.value}</Notice>}
    </div>
  );
}
