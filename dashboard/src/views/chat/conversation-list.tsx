import { Button } from '../../components/button.tsx';
import { Notice } from '../../components/notice.tsx';
import { visibleText } from '../../format/visible-text.ts';
import {
  conversations,
  currentId,
  isSaving,
  removeConversation,
  saveFailure,
  setSaving,
  startConversation,
  titleOf,
} from './store.ts';

/** The list of conversations, and the setting that saves them in the browser. */
export function ConversationList({ onSelect = () => {} }: { onSelect?: () => void }) {
  const startNew = (): void => {
    startConversation();
    onSelect();
  };
  return (
    <div class="conversations">
      <Button icon="plus" onClick={startNew}>
        New conversation
      </Button>
      <ul>
        {conversations.value.map((conversation) => (
          <li
            key={conversation.id}
            class="conversation"
            data-current={conversation.id === currentId.value ? '' : undefined}
          >
            <button
              type="button"
              aria-current={conversation.id === currentId.value ? 'true' : undefined}
              onClick={() => {
                currentId.value = conversation.id;
                onSelect();
              }}
            >
              <span dir="auto">{visibleText(titleOf(conversation))}</span>
            </button>
            {conversation.messages.length > 0 && (
              <Button
                kind="plain"
                isSmall
                icon="trash"
                label={`Delete ${visibleText(titleOf(conversation))}`}
                onClick={() => removeConversation(conversation.id)}
              />
            )}
          </li>
        ))}
      </ul>
      <label class="check small">
        <input type="checkbox" checked={isSaving.value} onChange={(event) => setSaving(event.currentTarget.checked)} />
        <span>Save conversations in this browser</span>
      </label>
      {saveFailure.value !== '' && <Notice tone="warn">{saveFailure.value}</Notice>}
    </div>
  );
}
