// Errors of the kinds in errors.h keep their kind, which says what is at fault.
#include "braid/module/layer_errors.h"

#include <c10/util/Exception.h>

#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid::modules {

Tensors with_layer_name(const std::string& where, const std::function<Tensors()>& forward) {
  try {
    return forward();
  } catch (const ConfigError& error) {
    std::vector<Problem> problems = error.problems();
    for (Problem& problem : problems) problem.key = cat(where, ": ", problem.key);
    throw ConfigError(std::move(problems));
  } catch (const CommError&) {
    throw;
  } catch (const IoError&) {
    throw;
  } catch (const RunError&) {
    throw;
  } catch (const InternalError&) {
    throw;
  } catch (const c10::Error& error) {
    throw RunError(cat(where, ": ", error.what_without_backtrace()));
  } catch (const std::exception& error) {
    throw RunError(cat(where, ": ", error.what()));
  }
}

}  // namespace braid::modules
