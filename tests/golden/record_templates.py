#!/usr/bin/env python3
"""Records tests/golden/templates.txt: chat templates of our own, which use what published ones use, and what Jinja
makes of them, set up as transformers sets it up.

    python3 -m venv venv && venv/bin/pip install jinja2 && venv/bin/python tests/golden/record_templates.py

A line is JSON: the template, the variables, and the text, or null where Jinja refuses. (What differs by intent is not
here: tuples are lists, and print so; an undefined value cannot be called.)
"""
import json
import pathlib

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        next(parser.stream)
        return parser.parse_statements(["name:endgeneration"], drop_needle=True)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


ENVIRONMENT = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                            extensions=[Generation, jinja2.ext.loopcontrols])
ENVIRONMENT.filters["tojson"] = tojson
ENVIRONMENT.globals["raise_exception"] = raise_exception
ENVIRONMENT.globals["strftime_now"] = lambda form: "1970"

TALK = {
    "messages": [
        {"role": "system", "content": "Be brief. \u00e9 \u4f60"},
        {"role": "user", "content": "  Hello 'you' & \"me\"\n"},
        {"role": "assistant", "content": "<think>\nhm\n</think>\n\nHi there"},
        {"role": "user", "content": [{"type": "text", "text": "part one"}, {"type": "image"}]},
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "c1", "function": {"name": "add", "arguments": {"a": 1, "b": 2.5, "c": [True, None]}}}]},
        {"role": "tool", "content": "3.5", "name": "add"},
    ],
    "tools": [{"type": "function", "function": {"name": "add", "description": "adds <numbers>",
                                                "parameters": {"type": "object", "properties": {
                                                    "b": {"type": "number"}, "a": {"type": "number"}}}}}],
    "bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": True,
}
SIMPLE = {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"},
                       {"role": "user", "content": "Bye"}],
          "bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": True}

WHOLE = [
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>' + '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}",
    "{{ bos_token }}{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('roles must alternate') }}{% endif %}{% if message['role'] == 'user' %}"
    "{{ '[INST] ' + message['content'] | trim + ' [/INST]' }}{% else %}{{ ' ' + message['content'] + eos_token }}"
    "{% endif %}{% endfor %}",
    """{%- set date = strftime_now("%Y") if strftime_now is defined else "none" %}
{#- a comment #}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\n" }}
{%- if tools is not none and tools is defined %}
    {{- "Tools:\\n" }}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- "\\n\\n" }}
    {%- endfor %}
{%- endif %}
{{- system_message }}
{{- date ~ "<|eot_id|>" }}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' }}
        {%- if message['content'] is string %}
            {{- message['content'] | trim + '<|eot_id|>' }}
        {%- else %}
            {%- for part in message.content if part.type == 'text' %}{{ part.text }}{%- endfor %}
        {%- endif %}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls|length == 1 %}
            {{- raise_exception("one tool call at a time") }}
        {%- endif %}
        {%- set tool_call = message.tool_calls[0].function %}
        {{- '{"name": "' + tool_call.name + '", ' }}
        {{- '"parameters": ' }}
        {{- tool_call.arguments | tojson }}
        {{- "}" }}
    {%- elif message.role == "tool" or message.role == "ipython" %}
        {{- "<|start_header_id|>ipython<|end_header_id|>\\n\\n" }}
        {%- if message.content is mapping or message.content is iterable %}
            {{- message.content | tojson }}
        {%- else %}
            {{- message.content }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
""",
    """{%- set ns = namespace(multi_step=true, last=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.multi_step and message.role == "user" and message.content is string and not(
        message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}
        {%- set ns.multi_step = false %}
        {%- set ns.last = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- set content = message.content if message.content is string else '' %}
    {%- if message.role == "assistant" %}
        {%- set reasoning = '' %}
        {%- if '</think>' in content %}
            {%- set reasoning = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
            {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
        {%- endif %}
        {%- if loop.index0 > ns.last and (loop.last or reasoning) %}
            {{- '<think>\\n' + reasoning.strip('\\n') + '\\n</think>\\n\\n' + content }}
        {%- else %}{{- content }}{%- endif %}
        {%- for call in message.tool_calls or [] %}
            {%- if (loop.first and content) or not loop.first %}{{- '\\n' }}{%- endif %}
            {%- set call = call.function if call.function else call %}
            {{- '<tool_call>' ~ call.name ~ (call.arguments if call.arguments is string else call.arguments|tojson) }}
        {%- endfor %}
    {%- elif message.role == "tool" %}
        {%- if loop.first or loop.previtem.role != "tool" %}{{- '<|im_start|>user' }}{%- endif %}
        {{- content }}
        {%- if loop.last or loop.nextitem.role != "tool" %}{{- '<|im_end|>\\n' }}{%- endif %}
    {%- else %}{{- message.role + ':' + content }}{%- endif %}
{%- endfor %}
""",
    """{% macro render(m, prefix='> ', *unused) %}{{ m }}{% endmacro %}x""",
    """{% macro show(m, prefix='> ', n=2) -%}
  {{ prefix * n }}{{ m.role | upper }}: {{ (m.content or 'nothing') | string | indent(2) }}
{% endmacro %}
{% for m in messages %}{{ show(m) }}{{ show(m, n=1, prefix='-') }}{% endfor %}""",
]
EXPRESSIONS = [
    "1 + 2 * 3", "7 // 2", "-7 // 2", "-7 % 3", "7 / 2", "2 ** 10", "(1 + 2) * 3", "1.5 + 1", "1e3", "10 % 3.5",
    "'a' ~ 1 ~ none ~ true ~ 1.0", "'a' + 'b' 'c'", "'ab' * 3", "[1, 2] + [3]", "[1] * 3", "not true", "not 0 == 1",
    "1 if false", "1 if false else 2", "1 < 2", "'a' < 'b'", "[1, 2] < [1, 3]", "1 == 1.0", "true == 1", "'1' == 1",
    "1 in [1, 2]", "'b' in 'abc'", "'x' not in {'x': 1}", "none is none", "x is defined", "x is not defined",
    "x is undefined", "x.y is defined", "x", "x or 'or'", "0 or ''", "'a' and 'b'", "[] is iterable",
    "'a' is string", "{} is mapping", "[] is sequence", "1 is number", "true is boolean", "true is number",
    "true is true", "1 is true", "false is false", "1.5 is float", "1 is integer", "true is integer", "3 is odd",
    "4 is even", "9 is divisibleby 3", "1 is equalto 1", "1 is eq(2)", "1 is ne 2", "1 is lt 2", "1 is ge(1)",
    "1 is in [1]", "'A' is upper", "'a' is lower", "1 is sameas true", "range is callable",
    "'  a '.strip()", "'xxaxx'.strip('x')", "'xxaxx'.lstrip('x')", "'xxaxx'.rstrip('x')", "'a,b,,c'.split(',')",
    "' a  b '.split()", "'a,b,c'.split(',', 1)", "'a b c'.split(none, 1)", "'a,b,c'.rsplit(',', 1)",
    "'abc'.startswith('a')", "'abc'.endswith(('x', 'c'))", "'aBc dEf'.upper()", "'aBc dEf'.lower()",
    "\"it's a dog-day\".title()", "\"it's a dog-day\"|title", "'hELLO wOrld'.capitalize()", "'aXbX'.replace('X', 'y')",
    "'aXbX'.replace('X', 'y', 1)", "'a\\nb\\r\\nc'.splitlines()", "'abcabc'.find('c')", "'abcabc'.rfind('c')",
    "'abc'.find('z')", "'abcabc'.count('bc')", "'abc'.removeprefix('a')", "'abc'.removesuffix('c')", "'12'.isdigit()",
    "'ab'.isalpha()", "','.join(['a', 'b'])", "{'a': 1, 'b': 2}.items()|map('last')|list", "{'a': 1}.keys() | list",
    "{'a': 1}.values() | list", "{'a': 1}.get('a')", "{'a': 1}.get('b')", "{'a': 1}.get('b', 3)",
    "{'a': {'b': 2}}.a.b",
    "{'items': 1}['items']", "{'a': 1}['b']", "'abcdef'[1]", "'abcdef'[-1]", "'abcdef'[1:3]", "'abcdef'[::-1]",
    "'abcdef'[-3:]", "'abcdef'[:-1]", "'abcdef'[::2]", "'\u00e9\u4f60x'[1]", "'\u00e9\u4f60x'|length", "[1, 2, 3][1:]",
    "[1, 2, 3][-2:]", "[1, 2, 3][5:]", "[1, 2, 3][10]", "[1, 2, 3][-1]", "(1, 2)[0]", "[[1, 2], [3, 4]][1][0]",
    "[1, 'a', none, true, 1.5, {'k': 'v'}]", "['it\\'s', \"q\\\"\", 'both\\'\\\"', '\\n\\\\\\t', '\u00e9\u200b']",
    "{}",
    "'a'|trim", "'xax'|trim('x')", "[3, 1, 2]|sort", "['b', 'A', 'c']|sort", "['b', 'A']|sort(case_sensitive=true)",
    "[1, 2]|sort(reverse=true)", "[{'a': 2}, {'a': 1}]|sort(attribute='a')",
    "{'b': 1, 'a': 2}|dictsort|map('first')|list",
    "{'a': 1}|items|map('join', '=')|list", "[1, 2, 3]|first", "[1, 2, 3]|last", "[]|first", "[1, 2]|join('-')",
    "'abc'|join(',')",
    "[{'a': 1}, {'a': 2}]|join(',', attribute='a')", "'abc'|length", "[1]|count", "x|length", "'a'|upper", "'A'|lower",
    "'hello world'|capitalize", "x|default('d')", "none|default('d')", "none|default('d', true)", "''|d('e', true)",
    "messages|selectattr('role', 'equalto', 'user')|list|length",
    "messages|rejectattr('role', 'in', ['user'])|list|length",
    "messages|selectattr('tool_calls')|list|length", "messages|selectattr('tool_calls', 'defined')|list|length",
    "messages|map(attribute='role')|join(',')", "messages|map(attribute='name', default='-')|join(',')",
    "['a', 'b']|map('upper')|list", "[' a ', 'b ']|map('trim')|list", "['a', 1]|select('string')|list",
    "[0, 1]|reject|list", "[1, 2, 3, 4]|select('odd')|list", "'abc'|reverse", "[1, 2]|reverse|list",
    "'aXa'|replace('a', 'b')",
    "'1'|int + 1", "'x'|int", "'x'|int(5)", "'1.9'|int", "1.9|int", "'1.5'|float", "'x'|float", "1|string + 'a'",
    "'a\\nb\\n\\nc'|indent", "'a\\nb'|indent(2, true)", "'a\\n\\nb'|indent(2, blank=true)", "'<a>'|safe",
    "'<a & b>'|e",
    "[1, 2, 3]|sum", "[{'v': 2}]|sum(attribute='v')", "[1, 3, 2]|max", "[1, 3, 2]|min", "-3|abs", "1.25|round(1)",
    "[1, 2, 1]|unique|list", "messages[0]|tojson", "tools|tojson", "tools|tojson(indent=2)", "{}|tojson(indent=2)",
    "{'b': 1, 'a': [1, {}]}|tojson(sort_keys=true)", "'\u00e9\\u2028</x>'|tojson",
    "'\u00e9'|tojson(ensure_ascii=true)",
    "[1, 2]|tojson(separators=(',', ':'))", "[1.0, 1e20, 0.1, 1e-7]|tojson", "range(3)|list", "range(1, 7, 2)|list",
    "range(3, 0, -1)|list", "dict(a=1)", "namespace(a=1).a", "'a' if x is defined else 'b' if true else 'c'",
    "messages[0].content[:5] + '..'", "messages|length > 3 and messages[0].role == 'system'", "1 - -1", "- 3 | abs",
    "'%' ~ 'x'", "not x", "none", "true", "1_000", "'\\x41\\u00e9'", "'a' 'b'", "x.y", "x['y']", "1 + 'a'", "'a' + 1",
    "1 / 0", "undefined_function()", "'a'.nothing()", "1 < 'a'", "raise_exception('no')", "[1]|nofilter",
    "1 is notest",
    "loop", "{'a': 1}.pop('a')", "[1].append(2)", "'a'|int|string|length", "messages.0.role", "''.join([])",
    "0.1 + 0.2",
    "1e16", "123456789.125", "5 // 2.0", "true + true", "'abc' in ['abc']", "'\u1e9e\u00df'|upper",
]
STATEMENTS = [
    "{% for x in [1, 2, 3] %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}"
    "{{ loop.last }}{{ loop.length }}{{ loop.previtem }}{{ loop.nextitem }}{{ loop.cycle('a', 'b') }};{% endfor %}",
    "{% for x in [] %}a{% else %}empty{% endfor %}", "{% for k, v in {'a': 1}.items() %}{{ k }}={{ v }}{% endfor %}",
    "{% for (k, v) in [[1, 2]] %}{{ k }}{{ v }}{% endfor %}", "{% for k in {'a': 1, 'b': 2} %}{{ k }}{% endfor %}",
    "{% for c in 'ab\u00e9' %}{{ c }}.{% endfor %}",
    "{% for x in [1, 2, 3, 4] if x % 2 %}{{ x }}{{ loop.index }}{% endfor %}",
    "{% for x in [1, 2, 3] %}{% if x == 2 %}{% continue %}{% endif %}{{ x }}{% endfor %}",
    "{% for x in [1, 2, 3] %}{% if x == 2 %}{% break %}{% endif %}{{ x }}{% endfor %}",
    "{% set x = 1 %}{% for i in [1, 2] %}{% set x = x + i %}{{ x }}{% endfor %}{{ x }}",
    "{% set ns = namespace(x=1) %}{% for i in [1, 2] %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}",
    "{% set a, b = 1, 2 %}{{ a }}{{ b }}", "{% set a = 1, 2 %}{{ a[1] }}",
    "{% set a %}text {{ 1 }}{% endset %}{{ a }}",
    "{% set a | upper | trim %} text {% endset %}[{{ a }}]", "{% filter upper %}a{{ 'b' }}{% endfilter %}",
    "{% if 0 %}a{% elif 1 %}b{% else %}c{% endif %}", "{% if 0 %}a{% elif 0 %}b{% else %}c{% endif %}",
    "{% if x %}a{% endif %}", "{% if true %}{% set y = 5 %}{% endif %}{{ y }}",
    "{% macro m(a, b=2, c=a) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1) }}{{ m(1, 3) }}{{ m(c=7, a=1) }}{{ m() }}",
    "{% macro m() %}{{ top }}{{ x }}{% endmacro %}{% set top = 't' %}{% for x in [1] %}{{ m() }}{% endfor %}",
    "{% macro f(n) %}{% if n > 0 %}{{ n }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(5) }}",
    "{% macro f(a) %}<{{ a }}{{ caller() }}{{ caller() }}>{% endmacro %}{% set n = 1 %}{% call f(2) %}b{{ n }}"
    "{% endcall %}", "{% macro f(a) %}{{ caller is defined }}{% endmacro %}{{ f(1) }}",
    "{% macro f(a, b, c=3) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ f(*[1, 2]) }}{{ f(1, *[2], c=4) }}",
    "{% call 1 %}{% endcall %}", "{% macro f() %}{% endmacro %}{{ f(*[1]) }}",
    "{% raw %}{{ x }} {% if %}{% endraw %}", "{%- raw -%} a {%- endraw -%} b", "a {#- c -#} b",
    "a {# c #} b\n{# d #}\ne",
    "  {% if true %}\n  x\n  {% endif %}\ny", "a\n  {%- if true -%}\n  x\n  {%- endif -%}\n y",
    "a\n  {%+ if true %}\n  x\n  {% endif +%}\ny", "a\n  {{ 1 }}\n  {{- 2 -}}\n b", "x {% if true %} y {% endif %} z",
    "\n\n{% if true %}\n\na\n\n{% endif %}\n\n", "a\r\nb\rc\n", "{{ 1 }}\n", "{{ 1 }}\n\n", "{{ {'a': {'b': 1}} }}",
    "{{ {'a': {'b': 1}}['a']['b'] }}", "{% generation %}a{{ 1 }}{% endgeneration %}b",
    "  {% generation %}\na\n{% endgeneration %}\n",
    "{{ '}}' }}{{ '%}' }}",
    "{% for m in messages %}{{ loop.index }}:{{ m.role }}{% if not loop.last %}, {% endif %}{% endfor %}",
    "{% for a in [1, 2] %}{% for b in [1, 2] %}{{ loop.index }}{% endfor %}{{ loop.index }}{% endfor %}",
    "{% for m in messages %}{% if m.content is string %}S{% elif m.content is none %}N{% elif m.content is iterable %}I"
    "{% endif %}{% endfor %}", "{%if true%}a{%endif%}", "{{1}}{{-2}}", "{%- set x = 1 -%} {{- x }} ",
    "{% if a is defined and a %}1{% else %}2{% endif %}", "{% if not a is defined %}1{% endif %}",
    # What is no template.
    "{% if %}a{% endif %}", "{% if true %}a", "{{ 1 ", "{% for %}{% endfor %}", "{{ 'a }}", "{# a", "{% endif %}",
    "{{ 1 + }}",
    "{% nothing %}", "{{ (1 }}", "{{ a b }}", "{% set %}", "{{ [1, }}", "{% break %}", "{% else %}", "{{ $ }}",
    "{% set x.y = 1 %}", "{% for x in 5 %}{% endfor %}", "{% set a, b = [1] %}", "{% raw %}a",
]


def rendered(template, variables):
    try:
        return ENVIRONMENT.from_string(template).render(**variables)
    except (jinja2.exceptions.TemplateError, TypeError, ZeroDivisionError, AttributeError, ValueError,
            SyntaxError):
        return None


cases = [(template, variables) for template in WHOLE for variables in (TALK, SIMPLE)]
cases += [("{{ " + expression + " }}", TALK) for expression in EXPRESSIONS]
cases += [(template, TALK) for template in STATEMENTS]
lines = [json.dumps(SIMPLE), json.dumps(TALK)]
for template, variables in cases:
    lines.append(json.dumps([template, int(variables is TALK), rendered(template, variables)]))
pathlib.Path(__file__).with_name("templates.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
