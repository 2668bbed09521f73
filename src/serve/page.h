// The page in which a model can be tried: one file each of text, script and style, without anything from elsewhere.
#pragma once

namespace quern::serve {

const char* PageHtml();
const char* PageScript();
const char* PageStyle();

}  // namespace quern::serve
