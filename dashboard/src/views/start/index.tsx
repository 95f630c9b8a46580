import { hrefOf } from '../../app/router.ts';
import { hasPart, permissions } from '../../app/session.ts';
import { CopyButton } from '../../components/copy-button.tsx';
import { messages } from '../../messages/index.ts';
import { Suggestions } from './suggestions.tsx';
import './start.css';

const text = messages.start;

/** Greets the user of a server without a model, and offers models. */
export default function StartView() {
  const { operate, admin } = permissions.value;
  const address = `${location.origin}/v1`;
  return (
    <div class="page">
      <div class="page-head">
        <div>
          <h1>{text.greeting}</h1>
          <p>{text.subtitle}</p>
        </div>
      </div>
      <ol class="steps">
        <li class="card">
          <h2>{text.choose}</h2>
          <p>{text.chooseHint}</p>
        </li>
        <li class="card">
          <h2>{text.ask}</h2>
          <p>{text.askHint}</p>
        </li>
        <li class="card">
          <h2>{text.connect}</h2>
          <p>{text.connectHint}</p>
          <p class="row">
            <code>{address}</code>
            <CopyButton text={address} label={text.copyAddress} />
          </p>
        </li>
      </ol>
      {operate && hasPart('catalog') ? <Suggestions canPull={admin} /> : <p>{text.askAdministrator}</p>}
      {operate && (
        <p class="small soft">
          <a href={hrefOf('models')}>{text.allModels}</a>
        </p>
      )}
    </div>
  );
}
