import { render } from 'preact';
import { App } from './app/app.tsx';
import { startSession } from './app/session.ts';
import './app/theme.ts';

render(<App />, document.getElementById('app')!);
void startSession();
