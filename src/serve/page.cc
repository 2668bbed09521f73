#include "serve/page.h"

namespace quern::serve {

const char* PageHtml() {
  return R"(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Quern</title>
<link rel="stylesheet" href="/page.css">
</head>
<body>
<header><h1>Quern</h1><span id="model"></span><button id="clear" type="button">New chat</button></header>
<main id="talk" aria-live="polite"></main>
<form id="form">
<textarea id="text" rows="2" placeholder="Say something" aria-label="Message" autofocus></textarea>
<button id="send">Send</button>
</form>
<footer><label>Temperature <input id="temperature" type="number" min="0" max="2" step="0.1" value="0.7"></label>
<label>Tokens <input id="tokens" type="number" min="1" max="4096" value="256"></label>
<label>Key <input id="key" type="password" autocomplete="off"></label>
<span id="speed"></span></footer>
<script src="/page.js"></script>
</body>
</html>
)";
}

const char* PageScript() {
  return R"('use strict';
const at = id => document.getElementById(id);
let messages = [], running = null;

function show(role, text) {
  const box = document.createElement('div');
  box.className = role;
  box.textContent = text;
  at('talk').append(box);
  box.scrollIntoView({block: 'end'});
  return box;
}
function headers() {
  const all = {'Content-Type': 'application/json'};
  if (at('key').value) all.Authorization = 'Bearer ' + at('key').value;
  return all;
}
function busy(on) { at('send').textContent = on ? 'Stop' : 'Send'; }

async function answer() {
  running = new AbortController();
  busy(true);
  const box = show('assistant', '');
  const start = performance.now();
  let text = '', usage = null;
  try {
    const response = await fetch('/v1/chat/completions', {
      method: 'POST', headers: headers(), signal: running.signal,
      body: JSON.stringify({messages, stream: true, stream_options: {include_usage: true},
                            temperature: Number(at('temperature').value), max_tokens: Number(at('tokens').value)})});
    if (!response.ok) throw new Error((await response.json()).error.message);
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = '';
    for (;;) {
      const {done, value} = await reader.read();
      if (done) break;
      const events = (rest + value).split('\n\n');
      rest = events.pop();
      for (const event of events) {
        const data = event.slice(6);
        if (data === '[DONE]') continue;
        const part = JSON.parse(data);
        if (part.error) throw new Error(part.error.message);
        if (part.usage) usage = part.usage;
        if (part.choices.length) text += part.choices[0].delta.content || '';
        box.textContent = text;
        box.scrollIntoView({block: 'end'});
      }
    }
  } catch (error) {
    if (error.name !== 'AbortError') show('error', error.message);
  }
  messages.push({role: 'assistant', content: text});
  const seconds = (performance.now() - start) / 1000;
  if (usage) at('speed').textContent = usage.completion_tokens + ' tokens, ' +
                                       (usage.completion_tokens / seconds).toFixed(1) + '/s';
  running = null;
  busy(false);
}
at('form').addEventListener('submit', event => {
  event.preventDefault();
  if (running) return running.abort();
  const text = at('text').value.trim();
  if (!text) return;
  at('text').value = '';
  messages.push({role: 'user', content: text});
  show('user', text);
  answer();
});
at('text').addEventListener('keydown', event => {
  if (event.key === 'Enter' && !event.shiftKey) { event.preventDefault(); at('form').requestSubmit(); }
});
at('clear').addEventListener('click', () => {
  if (running) running.abort();
  messages = [];
  at('talk').replaceChildren();
});
fetch('/v1/models', {headers: headers()}).then(r => r.json()).then(list => {
  if (list.data) at('model').textContent = list.data[0].id;
});
)";
}

const char* PageStyle() {
  return R"(:root { color-scheme: light dark; --line: #8884; --own: #3b82f61f; --wrong: #dc2626; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 52rem; height: 100dvh; display: flex; flex-direction: column;
       font: 16px/1.5 system-ui, sans-serif; padding: 0 1rem; }
header { display: flex; align-items: baseline; gap: 1rem; border-bottom: 1px solid var(--line); padding: .6rem 0; }
h1 { font-size: 1.1rem; margin: 0; }
#model { flex: 1; opacity: .7; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
main { flex: 1; overflow-y: auto; padding: 1rem 0; }
main div { white-space: pre-wrap; overflow-wrap: anywhere; padding: .5rem .8rem; border-radius: .6rem;
           margin: .4rem 0; }
.user { background: var(--own); margin-left: 15% !important; }
.error { color: var(--wrong); }
form { display: flex; gap: .6rem; padding: .6rem 0; border-top: 1px solid var(--line); }
textarea { flex: 1; font: inherit; resize: vertical; padding: .5rem; border-radius: .4rem;
           border: 1px solid var(--line); }
button { font: inherit; padding: .3rem 1rem; border-radius: .4rem; border: 1px solid var(--line); cursor: pointer; }
footer { display: flex; flex-wrap: wrap; gap: 1rem; padding-bottom: .6rem; font-size: .85rem; opacity: .85; }
footer input { width: 5rem; font: inherit; }
)";
}

}  // namespace quern::serve
